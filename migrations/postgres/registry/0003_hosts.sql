alter table hosts add column given bigint not null default 1;
alter table hosts add column claimed bigint;
