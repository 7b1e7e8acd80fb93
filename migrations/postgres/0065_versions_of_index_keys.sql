alter table fields add column index_keys bigint not null default 0;

-- There are few rows, and each index of a new tenant takes a page.
drop index one_time_tokens_of_address;
