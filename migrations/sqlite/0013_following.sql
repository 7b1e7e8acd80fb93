-- On PostgreSQL buckets get triggers that note what changed; a file gets them when somebody follows it.
select 1;
