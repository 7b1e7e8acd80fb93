import { and, eq, lte, sql } from 'drizzle-orm'
import type { PublicCtx } from '../accounts/context'
import { isNotModified } from '../core/etag'
import { notFound } from '../core/problem'
import { applyPage, type ListQuery, parsePage, toListPage } from '../storage/pagination'
import type { Tx } from '../storage/port'
import { prepareFirst } from '../storage/prepared-statements'
import { builds, components } from './tables'

const MAX_BUILDS_PER_COMPONENT = 10

export type Build = { js: string; css: string }

/** Returns a path with a hash of the build, so that the files at a path never change. */
export const buildPath = (identifier: string, { js, css }: Build) =>
  `${identifier}.${new Bun.CryptoHasher('sha256').update(`${js}\0${css}`).digest('hex').slice(0, 32)}`

/** Stores a build, and keeps the newest 10 of its component. A build that exists becomes the newest again. */
export async function saveBuild(tx: Tx, component: string, path: string, number: number, build: Build) {
  await tx
    .insert(builds)
    .values({ component, path, number, ...build })
    .onConflictDoUpdate({ target: [builds.component, builds.path], set: { number } })
  await tx
    .delete(builds)
    .where(and(eq(builds.component, component), lte(builds.number, number - MAX_BUILDS_PER_COMPONENT)))
}

const SORTABLE_COLUMNS = {
  _id: components._id,
  identifier: components.identifier,
  created: components.created,
  updated: components.updated,
}

/** Returns a page of the file paths of components, by identifier. */
export async function list({ db }: PublicCtx, query: ListQuery) {
  const page = parsePage(query, SORTABLE_COLUMNS, 'identifier')
  const rows = await applyPage(
    page,
    db.select({ identifier: components.identifier, path: components.path }).from(components),
  )
  const files = rows.map(({ identifier, path }) => ({
    identifier,
    js: buildUrl(path, 'js'),
    css: buildUrl(path, 'css'),
  }))
  return toListPage(page, files, () => db.$count(components))
}

const buildUrl = (path: string, kind: keyof Build) => `/api/static/${path}.${kind}`

const prepareFindText = (column: typeof builds.js | typeof builds.css) =>
  prepareFirst((db) =>
    db
      .select({ text: column })
      .from(builds)
      .where(eq(builds.path, sql.placeholder('path')))
      .limit(1),
  )
const findText = { js: prepareFindText(builds.js), css: prepareFindText(builds.css) }

const CONTENT_TYPES = { js: 'text/javascript;charset=utf-8', css: 'text/css;charset=utf-8' }

/** Returns a file of a build, which clients may cache forever. @throws 404 STATIC_FILE_NOT_FOUND */
export async function getFile({ db }: PublicCtx, name: string, request: Request): Promise<Response> {
  const [, path = '', kind] = /^(.+\.[0-9a-f]{32})\.(js|css)$/.exec(name) ?? notFound('static file')
  const { text } = (await findText[kind as keyof Build](db, { path })) ?? notFound('static file')
  const etag = `"${path.slice(-32)}"`
  const headers = {
    'content-type': CONTENT_TYPES[kind as keyof Build],
    'cache-control': 'public, max-age=31536000, immutable',
    // Another tenant may have another file at the same path.
    vary: 'tenant',
    etag,
    // Opened as a page it can do nothing. Pages of any site may load it; modules require CORS for that.
    'content-security-policy': "default-src 'none'; sandbox",
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  }
  return isNotModified(request, etag) ? new Response(null, { status: 304, headers }) : new Response(text, { headers })
}
