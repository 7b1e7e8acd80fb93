import type { ChosenFile } from '../../ui/chosen-files'
import { packArchive } from './site-archive'

const IS_TAR = /\.(tar|tgz|tar\.gz)$/i
const INDEX = 'index.html'

/**
 * Returns the archive to send: a tar as it is, else one of the files at and below the highest index.html.
 * @throws when there is none
 */
export function packSite(files: ChosenFile[]): Blob {
  const [first] = files
  if (files.length === 1 && first && IS_TAR.test(first.path)) return first.content
  const indexes = files.flatMap(({ path }) => (path === INDEX || path.endsWith(`/${INDEX}`) ? [path] : []))
  const [index] = indexes.toSorted((one, other) => one.split('/').length - other.split('/').length)
  if (!index) throw new Error('There is no index.html. Choose the folder that your build writes.')
  const top = index.slice(0, -INDEX.length)
  return packArchive(
    files
      .filter(({ path }) => path.startsWith(top) && isServed(path.slice(top.length)))
      .map(({ path, content }) => ({ path: path.slice(top.length), content })),
  )
}

/** The server refuses names that begin with a dot, such as those of a file manager. */
const isServed = (path: string) =>
  path.split('/').every((part, index) => !part.startsWith('.') || (index === 0 && part === '.well-known'))
