import type { UploadProgress } from './streams'
import { type Init, type Transport, toSearch, toSegment } from './transport'
import type { Page } from './workspaces'

export type AtollFile = {
  _id: string
  name: string
  /** The media type, detected from the content. */
  type: string
  size: number
  sha256: string
  owner: string
  workspace: string | null
  created: string
  /** Whether it stays when no entity names it. */
  keep?: boolean
  /** The path of the content. */
  url: string
}
/** A file of React Native. */
export type LocalFile = { uri: string; name: string; type: string }
export type UploadInit = Init & {
  /** Default: the name of the `File`. */
  name?: string
  /** The file stays even if no entity refers to it. */
  keep?: boolean
  /** Called while the content is sent where the platform has `XMLHttpRequest`, otherwise once at the end. */
  onProgress?: (progress: UploadProgress) => void
}
export type FileUrlOptions = {
  /** The browser saves the content instead of showing it. */
  download?: boolean
  /** The size of a thumbnail, which the `files-configuration` or a field of the file allows. */
  thumb?: `${number}x${number}`
  /** How the thumbnail fits its size. Default: `cover`. */
  fit?: 'cover' | 'contain' | 'inside'
}

/** The files of the caller. */
export function createFiles({ get, post, remove, request, send, origin }: Transport) {
  const path = '/api/files'
  return {
    /**
     * Uploads a file.
     * @example
     * const file = await client.files.upload(new Blob(['Dear Ada']), {
     *   name: 'letter.txt',
     *   onProgress: ({ sent, total }) => console.log(Math.round((100 * sent) / total)),
     * })
     */
    upload: async (
      content: Blob | string | ArrayBuffer | Uint8Array | LocalFile,
      { name, keep, onProgress, headers, ...init }: UploadInit = {},
    ): Promise<AtollFile> => {
      const isLocal = typeof content === 'object' && 'uri' in content
      const { name: ownName, type, size = 0 } = content as { name?: string; type?: string; size?: number }
      const form = new FormData()
      if (isLocal) form.append('file', content as unknown as Blob)
      const file = await request<AtollFile>('POST', path, {
        ...init,
        query: toSearch({ name: isLocal ? undefined : (name ?? ownName ?? 'file'), keep }),
        body: isLocal ? form : content,
        headers: { ...(!isLocal && { 'content-type': type || 'application/octet-stream' }), ...headers },
        onProgress,
      })
      onProgress?.({ sent: size || file.size, total: size || file.size })
      return file
    },
    /**
     * The caller's files, newest first; admins see those of all users.
     * @example
     * const pictures = await client.files.list({ type: 'image/*', limit: 20 })
     */
    list: (query: Page & { name?: string; type?: string; owner?: string } = {}, init: Init = {}) =>
      get<AtollFile[]>(path, query, init),
    /**
     * A file without its content.
     * @example
     * const { size, type } = await client.files.get(file._id)
     */
    get: (id: string, init: Init = {}) => get<AtollFile>(`${path}/${toSegment(id)}`, {}, init),
    /**
     * The content of a file.
     * @example
     * const text = await (await client.files.read(file)).text()
     */
    read: async (file: { url: string }, init: Init = {}) => (await send('GET', file.url, init)) as unknown as Response,
    /**
     * The address of the content, for pages that have the session cookie; for others, `token` makes one.
     * @example
     * const address = client.files.url(file, { download: true })
     * const thumbnail = client.files.url(file, { thumb: '400x400', fit: 'inside' })
     */
    url: (file: { url: string }, { download, thumb, fit }: FileUrlOptions = {}) =>
      `${origin}${file.url}${toSearch({ thumb, fit, ...(download && { download: '' }) })}`,
    /**
     * An address with which anybody can read the content for five minutes.
     * @example
     * const { url, expires } = await client.files.token(file._id)
     */
    token: async (id: string, init: Init = {}) => {
      const link = await post<{ token: string; url: string; expires: string }>(
        `${path}/${toSegment(id)}/token`,
        undefined,
        init,
      )
      return { ...link, url: origin + link.url }
    },
    /**
     * Deletes a file.
     * @example
     * await client.files.remove(file._id)
     */
    remove: (id: string, init: Init = {}) => remove(`${path}/${toSegment(id)}`, init),
  }
}
