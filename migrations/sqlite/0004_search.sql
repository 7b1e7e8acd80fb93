-- Which words each entity has, of those blueprints that were ever searched. The words are made by the application.
create virtual table search_words using fts5(words, content='', contentless_delete=1, tokenize='ascii');

create table search_progress (
  blueprint text not null primary key references blueprints (key) on delete cascade,
  done integer not null,
  upto integer not null
) strict;
