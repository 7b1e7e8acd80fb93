/** Types that the runtime does not know, or knows without a charset. */
const TYPES = new Map([
  ['webmanifest', 'application/manifest+json'],
  ['map', 'application/json'],
  ['ts', 'text/plain'],
])

/** Returns the media type of a file by its extension. Texts are UTF-8. */
export function mediaTypeOf(path: string): string {
  const name = path.slice(path.lastIndexOf('/') + 1)
  const [essence = ''] = (TYPES.get(name.slice(name.lastIndexOf('.') + 1)) ?? Bun.file(name).type).split(';')
  return isText(essence) ? `${essence}; charset=utf-8` : essence
}

const isText = (type: string) =>
  type.startsWith('text/') || /^application\/(javascript|json|xml|xhtml\+xml|\w+\+json)$|^image\/svg\+xml$/.test(type)

/** Tells whether a file of this type gets smaller when it is compressed. */
export const isCompressible = (type: string) =>
  /charset=utf-8$|^application\/(wasm|rss\+xml|atom\+xml|vnd\.ms-fontobject)$|^font\/(ttf|otf)$|^image\/(bmp|x-icon)$/.test(
    type,
  )
