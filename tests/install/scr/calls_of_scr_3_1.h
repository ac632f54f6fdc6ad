/* The calls and constants of SCR 3.1, by its documentation. */
#ifndef CALLS_OF_SCR_3_1_H
#define CALLS_OF_SCR_3_1_H

enum { scr_success = 0, scr_max_filename = 1024 };
enum { scr_flag_none = 0, scr_flag_checkpoint = 1, scr_flag_output = 2 };

int SCR_Init(void);
int SCR_Finalize(void);
const char* SCR_Config(const char* config);
const char* SCR_Configf(const char* format, ...);
int SCR_Route_file(const char* name, char* file);
int SCR_Have_restart(int* flag, char* name);
int SCR_Start_restart(char* name);
int SCR_Complete_restart(int valid);
int SCR_Need_checkpoint(int* flag);
int SCR_Start_checkpoint(void);
int SCR_Complete_checkpoint(int valid);
int SCR_Start_output(const char* name, int flags);
int SCR_Complete_output(int valid);
int SCR_Current(const char* name);
int SCR_Drop(const char* name);
int SCR_Delete(const char* name);
char* SCR_Get_version(void);
int SCR_Should_exit(int* flag);

#endif
