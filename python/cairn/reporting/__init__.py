"""Reports from the logs of jobs: a page in HTML, and metrics for a site's monitoring."""
