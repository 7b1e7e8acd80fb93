-- Mails that somebody asked for to sign in, until their code or link is used.
create table email_signins (
  _id text not null primary key,
  email text not null,
  email_key text not null,
  code text,
  link text,
  tries integer not null,
  expires integer not null
) strict;

create unique index email_signins_by_link on email_signins (link);

create index email_signins_by_key on email_signins (email_key);

create index email_signins_by_end on email_signins (expires);
