import type { PublicCtx } from '../../accounts/context'
import { toWorkOwner } from '../../accounts/work-owner'
import { badRequest, Problem } from '../../core/problem'
import { listNamingFields } from '../../entities/file-references'
import { getSettings } from '../../platform/settings/tenant-settings'
import type { Tenant } from '../../tenancy/tenants'
import type { FileRow } from '../access'
import { keepThumbnail } from '../contents'
import { withDraft } from '../drafts'
import { fileSettings } from '../file-settings'
import { contentStore } from '../stores/index'
import type { Fit, ThumbnailFormat, ThumbnailOrder } from './order'
import { runThumbnailProcess } from './thumbnail-process'

const MAX_PICTURE_BYTES = 64 << 20

/** The thumbnail of a picture: the name under which it is stored, and how it is made. */
export type Thumbnail = { name: string; type: string; order: ThumbnailOrder }

/** The formats of pictures by their media type: of which format they are, and of which their thumbnails are. */
const formats: Record<string, { from: Bun.Image.Format; to: ThumbnailFormat }> = {
  'image/jpeg': { from: 'jpeg', to: 'jpeg' },
  'image/png': { from: 'png', to: 'png' },
  'image/apng': { from: 'png', to: 'png' },
  'image/webp': { from: 'webp', to: 'webp' },
  'image/gif': { from: 'gif', to: 'png' },
  'image/bmp': { from: 'bmp', to: 'png' },
  'image/avif': { from: 'avif', to: 'jpeg' }, // where the system can read it
}

/**
 * Returns what the thumbnail of a file is, without making it.
 * @throws 400 for a size that is not allowed, 415 NOT_A_PICTURE, 415 PICTURE_UNREADABLE for a file over 64 MiB
 */
export async function describeThumbnail(
  tenant: Tenant,
  file: FileRow,
  size: string,
  fit: Fit = 'cover',
): Promise<Thumbnail> {
  await assertSize(tenant, file, size)
  const format = formats[file.type]
  if (!format) throw new Problem(415, 'NOT_A_PICTURE', `There are no thumbnails of files of the type ${file.type}.`)
  if (file.size > MAX_PICTURE_BYTES)
    throw new Problem(415, 'PICTURE_UNREADABLE', 'There are no thumbnails of pictures over 64 MiB.')
  const [width, height] = size.split('x').map(Number) as [number, number]
  const name = `${file.sha256}.${size}-${fit}.${format.to}`
  return { name, type: `image/${format.to}`, order: { ...format, fit, width, height } }
}

/** The sizes are those of the configuration, and of the fields that name the file. @throws 400 for another one */
async function assertSize(tenant: Tenant, { _id }: FileRow, size: string) {
  const { thumbs } = await getSettings(tenant, fileSettings)
  if (thumbs.includes(size)) return
  const fields = await listNamingFields(tenant, _id)
  const sizes = [...new Set([...thumbs, ...fields.flatMap(({ thumbs = [] }) => thumbs)])]
  if (sizes.includes(size)) return
  const allowed = sizes.length ? `The allowed sizes are ${sizes.join(', ')}.` : 'No sizes are allowed.'
  badRequest({ path: 'thumb', message: `There are no thumbnails of this size. ${allowed}` })
}

/** Thumbnails that are being made, by tenant and name. */
const makings = new Map<string, Promise<void>>()

/**
 * Returns a thumbnail, which is made and stored at the first request for it. Returns undefined when the content of the
 * file is missing. @throws 415 PICTURE_UNREADABLE, 503 BUSY, FILE_STORE_UNAVAILABLE
 */
export async function openThumbnail(ctx: PublicCtx, file: FileRow, thumbnail: Thumbnail, request: Request) {
  const open = () => contentStore().open(ctx.tenant, thumbnail.name)
  const stored = await open()
  if (stored) return stored
  const key = `${ctx.tenant} ${thumbnail.name}`
  const making = makings.get(key) ?? make(ctx, file, thumbnail, request).finally(() => makings.delete(key))
  makings.set(key, making)
  await making
  return open()
}

async function make(ctx: PublicCtx, { sha256 }: FileRow, { name, order }: Thumbnail, request: Request) {
  const picture = await contentStore().open(ctx.tenant, sha256)
  if (!picture) return
  await runThumbnailProcess(toWorkOwner(ctx, request), picture, order, (bytes) =>
    withDraft(ctx, bytes, (draft) => keepThumbnail(ctx, sha256, name, draft)),
  )
}
