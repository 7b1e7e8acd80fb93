-- What all completions of a day or a month took, for each of whom there may be a budget.
create table ai_spent (
  _id text not null primary key,
  tokens integer not null,
  cost integer not null
) strict;
