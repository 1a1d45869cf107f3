"""PrivOLAP: how many useful answers a script of questions gets for one promise, and what goes silently wrong."""
