create table blocks (
  _id text not null primary key,
  name text not null,
  content_type text not null check (content_type in ('content', 'html')),
  size integer not null,
  version integer not null,
  created integer not null,
  updated integer not null,
  rules text,
  description text not null,
  content text not null,
  shown text
) strict;

create index blocks_by_time on blocks (created, _id);
create index blocks_by_name on blocks (name, _id);

-- Tells one state of a configuration from another.
alter table configurations add column version integer not null default 1;
