SELECT to_regclass('remembrancer.migration') IS NOT NULL
