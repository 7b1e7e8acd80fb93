import { and, eq, inArray, type SQL } from 'drizzle-orm'
import type { Answer } from '../../core/etag'
import { given, isOn } from '../../core/shapes'
import { answerPage, judgedPage, namesOf, type Page, pageOf, selectedOf } from '../../storage/lists'
import type { Db } from '../../storage/port'
import type { Ctx } from '../guard'
import { User } from '../shapes'
import { type UserRow, users } from '../tables'
import { fullNameOf, keyOfName, shown } from '../users'
import type { UsersQuery } from './shapes'

const sortable = {
  _id: users._id,
  username: users.usernameKey,
  email: users.emailKey,
  created: users.created,
  updated: users.updated,
}

/** A page of the users of the tenant, newest first. @throws 400 */
export async function all(ctx: Ctx, query: UsersQuery, answer: Answer) {
  const [page, fields] = [pageOf(query, sortable), selectedOf(query.select, FIELDS)]
  const [where, fits] = [conditions(query), judge(query)]
  const read = (limit: number, offset: number) => found(ctx.db, where, page, limit, offset)
  const { rows, total } = fits
    ? await judgedPage(page, read, (some) => some.filter(fits))
    : { rows: await read(page.limit + 1, page.offset), total: undefined }
  const told = await answerPage(answer, page, rows, async () => total ?? ctx.db.$count(users, where))
  return told.map((row) => picked(shown(row, true), fields))
}

/** What the database can tell. */
function conditions(query: UsersQuery): SQL | undefined {
  const [ids, username] = [namesOf(query._id, '_id'), given(query.username)]
  return and(
    ids && inArray(users._id, ids),
    username !== undefined && isOn(query.exact) ? eq(users.usernameKey, keyOfName(username)) : undefined,
  )
}

type Judge = (user: UserRow) => boolean

/** What only we can tell, because it is about letters, or about what is in a list. */
function judge(query: UsersQuery): Judge | undefined {
  const [roles, username, q] = [namesOf(query.roles, 'roles'), given(query.username), given(query.q)]
  const part = username !== undefined && !isOn(query.exact) ? keyOfName(username) : undefined
  if (!roles && part === undefined && q === undefined) return
  const searched = keyOfName(q ?? '')
  const has = (text: string | null) => !!text && keyOfName(text).includes(searched)
  return (user) =>
    (!roles || user.roles.some((role) => roles.includes(role))) &&
    (part === undefined || user.usernameKey.includes(part)) &&
    (q === undefined || [user.usernameKey, user.emailKey, user.name, fullNameOf(user), user.phone].some(has))
}

const found = (db: Db, where: SQL | undefined, { order }: Page, limit: number, offset: number) =>
  db
    .select()
    .from(users)
    .where(where)
    .orderBy(...order)
    .limit(limit)
    .offset(offset)

const FIELDS = Object.keys(User.properties)

const picked = ({ _id, ...user }: ReturnType<typeof shown>, fields: Set<string> | undefined) => ({
  _id,
  ...(fields ? Object.fromEntries(Object.entries(user).filter(([key]) => fields.has(key))) : user),
})
