-- Buckets get what isolate.sql has had since: notes of what changed, for who follows a tenant. It is run after this.
select 1;
