const start = Bun.randomUUIDv7().slice(0, 13)
let count = 0
const names = new WeakMap<Request, string>()

/** By what an answer and the log name a request: what the caller says, or a name of ours. */
export function nameOf(request: Request): string {
  const known = names.get(request)
  if (known) return known
  const given = request.headers.get('x-request-id')
  return given && /^[\w.:-]{1,64}$/.test(given) ? given : `${start}-${(++count).toString(36)}`
}

/** For a request that was made from another: the same name. */
export const sharesName = (request: Request, original: Request) => void names.set(request, keptNameOf(original))

/** The same, which it will keep: for those who name it before its answer does. */
export function keptNameOf(request: Request): string {
  const name = nameOf(request)
  names.set(request, name)
  return name
}
