-- Where the thing that a request created can be read, to answer it after a crash.
alter table idempotency_keys add column created text collate "C";
