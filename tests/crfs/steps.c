/* A plain program that writes steps, linked statically: steps DIRECTORY FIRST LAST writes them, and
   steps DIRECTORY check STEP returns 0 if the step has the right bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { parts = 3, bytes = 70000 };

static void fill(unsigned char* data, int step, int part) {
  for (int i = 0; i < bytes; ++i) data[i] = (unsigned char)(step * 31 + part * 7 + i % 251);
}

static int write_part(const char* directory, int step, int part) {
  static unsigned char data[bytes];
  char name[4096], temporary[4200];
  snprintf(name, sizeof name, "%s/step.%d/part.%d", directory, step, part);
  snprintf(temporary, sizeof temporary, "%s.tmp", name);
  const int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return perror(temporary), 1;
  fill(data, step, part);
  for (int at = 0; at < bytes; at += 7000)
    if (write(file, data + at, 7000) != 7000) return perror("write"), 1;
  if (close(file) != 0) return perror("close"), 1;
  return rename(temporary, name) == 0 ? 0 : (perror("rename"), 1);
}

static int check_part(const char* directory, int step, int part) {
  static unsigned char wanted[bytes], found[bytes + 1];
  char name[4096];
  snprintf(name, sizeof name, "%s/step.%d/part.%d", directory, step, part);
  FILE* file = fopen(name, "rb");
  if (file == NULL) return perror(name), 1;
  const size_t length = fread(found, 1, sizeof found, file);
  fclose(file);
  fill(wanted, step, part);
  return length == bytes && memcmp(wanted, found, bytes) == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  int failed = argc != 4;
  if (!failed && strcmp(argv[2], "check") == 0) {
    for (int part = 0; part < parts; ++part) failed |= check_part(argv[1], atoi(argv[3]), part);
    return failed;
  }
  for (int step = failed ? 1 : atoi(argv[2]); !failed && step <= atoi(argv[3]); ++step) {
    char name[4096];
    snprintf(name, sizeof name, "%s/step.%d", argv[1], step);
    mkdir(name, 0755);
    for (int part = 0; part < parts; ++part) failed |= write_part(argv[1], step, part);
  }
  return failed;
}
