import { Problem } from './problem'

/** The part of a route's context that a verb may need to speak HTTP. */
export type HttpContext = { request: Request; set: { headers: unknown } }

/** Names one state of a thing, also among things that had its name before it; and of the `form` in which it is shown. */
export const etagOf = (version: number, updated: number | string, form = 0) =>
  `"${version}${form ? `.${form}` : ''}-${(typeof updated === 'string' ? Date.parse(updated) : updated).toString(36)}"`

export const setEtag = ({ set }: HttpContext, etag: string) => void Object.assign(set.headers as object, { etag })

/** For an answer with a secret in it: nobody on its way may keep it. */
export const setNoStore = ({ set }: HttpContext) =>
  void Object.assign(set.headers as object, { 'cache-control': 'no-store' })

/** Refuses (412) a write that was decided on an older state than this one. */
export function assertIfMatch({ headers }: Request, etag: string) {
  const ifMatch = headers.get('if-match')
  if (ifMatch && !includesEtag(ifMatch, etag))
    throw new Problem(412, 'VERSION_MISMATCH', 'The resource has changed since you read it. Read it again, then retry.')
}

/** Whether the caller has this state already. */
export function isNotModified({ headers }: Request, etag: string) {
  const ifNoneMatch = headers.get('if-none-match')
  return !!ifNoneMatch && includesEtag(ifNoneMatch.replaceAll('W/', ''), etag)
}

const includesEtag = (list: string, etag: string) => list.split(',').some((one) => ['*', etag].includes(one.trim()))
