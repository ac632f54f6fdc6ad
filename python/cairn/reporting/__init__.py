"""What the logs of jobs tell, as a page for people and as figures for a site's monitoring."""
