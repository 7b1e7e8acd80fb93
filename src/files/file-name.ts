const MAX_NAME_LENGTH = 200
const FALLBACK_NAME = 'file'

/** Returns the last part of a name from outside, without what a path, a header or a screen would misread. */
export function toFileName(name: string): string {
  const last = name.toWellFormed().split(/[/\\]/).at(-1)!
  // Control characters, line separators, and what changes the direction of text: "gpj.exe" would look like "exe.jpg".
  const clean = last.replace(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '').trim()
  if (/^\.*$/.test(clean)) return FALLBACK_NAME
  if (clean.length <= MAX_NAME_LENGTH) return clean
  const [extension = ''] = /\.[\w-]{1,20}$/.exec(clean) ?? []
  return clean.slice(0, MAX_NAME_LENGTH - extension.length).replace(/[\ud800-\udbff]$/, '') + extension
}

/** Returns the path of a file's content. */
export const toFileUrl = (id: string, name: string) => `/api/files/${id}/${encodeURIComponent(name)}`
