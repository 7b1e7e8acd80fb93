alter table tenants add column earlier_uids text collate "C" not null default '[]';
