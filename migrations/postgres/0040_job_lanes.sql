-- Jobs that were never tried, and those whose last attempt failed, have places of their own: each is found without the other.
drop index jobs_due;
create index jobs_fresh on jobs (tenant_id, due, seq) where due is not null and attempts = 0;
create index jobs_retried on jobs (tenant_id, due, seq) where due is not null and attempts > 0;
