-- Who runs the installation gives hosts to a tenant; what a tenant's websites have is claimed, for a version of its
-- configuration. A host may be both.
alter table hosts add column given integer not null default 1;
alter table hosts add column claimed integer;
