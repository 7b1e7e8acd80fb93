create table email_signins (
  tenant_id uuid not null default current_setting('app.tenant')::uuid,
  _id text collate "C" not null,
  email text collate "C" not null,
  email_key text collate "C" not null,
  code text collate "C",
  link text collate "C",
  tries bigint not null,
  expires bigint not null,
  primary key (tenant_id, _id)
);

create unique index email_signins_by_link on email_signins (tenant_id, link);
