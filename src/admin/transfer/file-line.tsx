import { Anchor, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { countFileRows, type RowFile } from './file-rows'

/** Returns how many rows a file has, or undefined while they are counted. */
export const useRowCount = (file: RowFile | undefined): number | undefined =>
  useQuery({
    queryKey: ['file rows', file?.file.name, file?.file.size, file?.file.lastModified, file?.dialect?.separator],
    queryFn: () => countFileRows(file!),
    enabled: !!file,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  }).data

type FileLineProps = { file: RowFile; count: number | undefined; onClose: () => void }

/** The name of an open file with its number of rows, and the way to another one. */
export const FileLine = ({ file, count, onClose }: FileLineProps) => (
  <Text size="sm">
    <b>{file.file.name}</b>
    {count !== undefined && ` · ${count.toLocaleString()} ${count === 1 ? 'row' : 'rows'}`} ·{' '}
    <Anchor component="button" type="button" size="sm" onClick={onClose}>
      Choose another file
    </Anchor>
  </Text>
)
