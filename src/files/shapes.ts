import { type Static, t } from 'elysia'
import { id, line, time } from '../core/shapes'
import { growingListQuery } from '../storage/pagination'
import { FITS } from './thumbnails/order'

const maybe = t.Optional

export const StoredFile = t.Object({
  _id: id,
  name: t.String(),
  type: t.String({ description: 'media type, detected from the content' }),
  size: t.Number({ description: 'size in bytes' }),
  width: maybe(t.Number({ description: 'width of an image in pixels, as displayed' })),
  height: maybe(t.Number()),
  sha256: t.String({ description: 'SHA-256 of the content, in hex' }),
  visibility: t.Literal('private', {
    description:
      'readable by its owner, admins, anyone with a link, and users who can read an entity that refers to the file',
  }),
  owner: t.String({ description: 'ID of the user who uploaded the file' }),
  workspace: t.Nullable(t.String({ description: 'active workspace of the owner at upload' })),
  created: time,
  keep: maybe(t.Boolean({ description: 'whether the file is retained without references; absent if not' })),
  url: t.String({ description: 'path of the content' }),
})
export type StoredFile = Static<typeof StoredFile>

export const FileList = t.Object({
  ...growingListQuery,
  name: maybe(t.String({ description: 'filter by name' })),
  type: maybe(t.String({ description: 'filter by media type, such as `image/png` or `image/*`' })),
  owner: maybe(t.String({ description: 'filter by user ID of the owner' })),
})

export const FileChange = t.Object({
  keep: t.Boolean({
    description: 'whether the file is retained without references; otherwise, it is deleted after a day',
  }),
})
export type FileChange = Static<typeof FileChange>

export const FileDeletion = t.Object({
  force: maybe(t.String({ description: 'true: deletes the file even if entities refer to it' })),
})

export const FileUpload = t.Object({
  name: maybe(line(1_000)),
  keep: maybe(t.String({ description: 'true: retains the file even if no entity refers to it' })),
})

export const ContentParams = t.Object({ id: t.String(), name: t.String() })
export const ContentQuery = t.Object({
  token: maybe(t.String({ description: 'a token of `POST /api/files/:id/token`' })),
  download: maybe(t.String({ description: 'sends the file as a download' })),
  thumb: maybe(t.String({ description: 'returns a thumbnail of this size, such as `400x400`' })),
  fit: maybe(
    t.Union(
      FITS.map((fit) => t.Literal(fit)),
      {
        default: 'cover',
        description:
          'how the thumbnail fits the size: cropped to fill, padded to fit, or scaled down to fit without enlarging',
      },
    ),
  ),
})

export const FileLink = t.Object({
  token: t.String(),
  url: t.String({ description: 'path of the content, including the token' }),
  expires: time,
})
