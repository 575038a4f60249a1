SELECT name FROM remembrancer.migration
