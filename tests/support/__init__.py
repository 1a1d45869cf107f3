"""What several folders of tests share; no test is in here, and nothing is imported from one."""
