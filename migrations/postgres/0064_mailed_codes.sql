alter table one_time_tokens
  add column code text collate "C",
  add column email_key text collate "C",
  add column code_expires bigint;

create index one_time_tokens_of_address on one_time_tokens (tenant_id, email_key) where code is not null;
