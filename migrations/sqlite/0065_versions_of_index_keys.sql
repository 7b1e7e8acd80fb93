-- The index keys of unique e-mail addresses are addresses since version 1. Fields of earlier releases have exact texts.
alter table fields add column index_keys integer not null default 0;

-- There are few rows, and each index of a new tenant takes a page.
drop index one_time_tokens_of_address;
