-- Short codes of mails, which may be entered in place of their tokens.
alter table one_time_tokens add column code text;
alter table one_time_tokens add column email_key text;
alter table one_time_tokens add column code_expires integer;

create index one_time_tokens_of_address on one_time_tokens (email_key) where code is not null;
