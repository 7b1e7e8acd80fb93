create table vector_stores (
  seq integer not null primary key,
  _id text not null unique,
  source text not null,
  integration text not null,
  scope text not null check (scope in ('thread', 'user', 'workspace', 'tenant')),
  subject text not null,
  model text,
  dimension integer,
  version integer not null,
  chunks integer not null,
  expiration_after_days real,
  created integer not null,
  expires integer,
  unique (integration, scope, subject, source)
) strict;

create index vector_stores_of_subject on vector_stores (subject);
create index vector_stores_by_end on vector_stores (expires);

create table knowledge_files (
  _id text not null primary key,
  store text not null,
  name text not null,
  metadata text not null,
  user text not null,
  chunks integer not null,
  ready integer not null,
  created integer not null
) strict;

create index knowledge_files_of_store on knowledge_files (store, ready, _id);
create index knowledge_files_unready on knowledge_files (ready, created);

create table knowledge_chunks (
  number integer not null primary key,
  file text not null,
  position integer not null,
  text text not null,
  vector blob,
  unique (file, position)
) strict;

-- The words of each chunk, with its store's number before each. They are made by the application.
create virtual table search_chunks using fts5(
  store unindexed, words, content='', contentless_delete=1, contentless_unindexed=1, tokenize='ascii'
);

create table search_files (file text not null primary key) strict;
