INSERT INTO remembrancer.migration (name) VALUES (%s::text)
