import { Text } from '@mantine/core'
import { IconFile } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import { fileContentQuery } from '../api/files'
import { formatBytes } from './format-bytes'

const MAX_PREVIEW_BYTES = 10 << 20
const PICTURE_NAME = /\.(png|jpe?g|gif|webp|avif|bmp)$/i

type FilePreviewProps = { url: string; name: string; type?: string; bytes?: number; size: number }

/** A picture in a square of `size` px, or a sign for any other file. */
export function FilePreview({ url, name, type, bytes = 0, size }: FilePreviewProps) {
  const isPicture = type ? /^image\/(?!svg)/.test(type) : PICTURE_NAME.test(name)
  const isShown = isPicture && bytes <= MAX_PREVIEW_BYTES
  const { data: content } = useQuery({ ...fileContentQuery(url), enabled: isShown, retry: false })
  const source = useObjectUrl(content)
  const place = { width: size, height: size, flex: 'none' }
  if (source) return <img src={source} alt={name} style={{ ...place, objectFit: 'contain' }} />
  if (isPicture && !isShown) return <Text size="xs">Too large to be shown ({formatBytes(bytes)})</Text>
  return <IconFile size={Math.min(size, 40)} stroke={1.4} aria-hidden style={{ flex: 'none' }} />
}

/** Returns an address of a content within the page, as long as it is shown. */
function useObjectUrl(content: Blob | undefined): string | undefined {
  const [url, setUrl] = useState<string>()
  useEffect(() => {
    if (!content) return setUrl(undefined)
    const created = URL.createObjectURL(content)
    setUrl(created)
    return () => URL.revokeObjectURL(created)
  }, [content])
  return url
}
