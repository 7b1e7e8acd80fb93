import type { ActiveSite, ServedFile } from './active-site'

/** What a path of a site leads to. */
export type Page =
  | { kind: 'file'; file: ServedFile }
  | { kind: 'redirect'; path: string }
  | { kind: 'missing'; file?: ServedFile }

/**
 * Returns what a decoded path leads to. `about` is `about.html`, and `about/` is `about/index.html`; where there is only
 * the other one, it redirects there. In an app of one page, unknown paths of pages are `index.html`.
 */
export function findPage({ files, spa }: ActiveSite, path: string, isNavigation: () => boolean): Page {
  const file = files.get(path.endsWith('/') || path === '' ? `${path}index.html` : path) ?? files.get(`${path}.html`)
  if (file) return { kind: 'file', file }
  const other = path.endsWith('/') ? path.slice(0, -1) : `${path}/index.html`
  if (path !== '' && (files.has(other) || files.has(`${other}.html`)))
    return { kind: 'redirect', path: path.endsWith('/') ? other : `${path}/` }
  const index = files.get('index.html')
  if (spa && index && !hasExtension(path) && isNavigation()) return { kind: 'file', file: index }
  return findMissingPage({ files })
}

/** Returns what a path leads to that no site has. */
export function findMissingPage({ files }: Pick<ActiveSite, 'files'>): Page {
  const file = files.get('404.html')
  return { kind: 'missing', ...(file && { file }) }
}

const hasExtension = (path: string) => /\.[A-Za-z0-9]{1,10}$/.test(path)
