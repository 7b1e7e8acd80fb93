-- The identities that the data of a tenant had before restores, latest first (JSON).
alter table tenants add column earlier_uids text not null default '[]';
