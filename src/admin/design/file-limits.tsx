import { TagsInput, TextInput } from '@mantine/core'
import type { DraftField } from './design-draft'

const COMMON_TYPES = ['image/*', 'video/*', 'audio/*', 'text/*', 'application/pdf']

type FileLimitsProps = {
  field: DraftField
  errorWithin: (part: string) => string | undefined
  onChange: (part: Partial<DraftField>) => void
}

/** Which files a field takes, by their types and their size, and the sizes of their thumbnails. */
export const FileLimits = ({ field, errorWithin, onChange }: FileLimitsProps) => (
  <>
    <TagsInput
      label="Types of files"
      description="Such as image/*. Without one, every type is taken."
      data={COMMON_TYPES}
      value={field.accept ?? []}
      error={errorWithin('accept')}
      onChange={(accept) => onChange({ accept: accept.length ? accept : undefined })}
    />
    <TextInput
      label="Largest file"
      description="Bytes, or a size such as 500K or 10M."
      value={field.maxSize ?? ''}
      error={errorWithin('maxSize')}
      onChange={(event) => onChange({ maxSize: event.currentTarget.value || undefined })}
    />
    <TagsInput
      label="Sizes of thumbnails"
      description="Such as 300x200, besides those of the files-configuration."
      value={field.thumbs ?? []}
      error={errorWithin('thumbs')}
      onChange={(thumbs) => onChange({ thumbs: thumbs.length ? thumbs : undefined })}
    />
  </>
)
