-- Mails that somebody asked for to sign in, until their code or link is used.
create table email_signins (
  _id text not null primary key,
  email text not null,
  email_key text not null,
  code text,
  link text,
  tries integer not null,
  expires integer not null
) strict, without rowid;

create unique index email_signins_by_link on email_signins (link);
