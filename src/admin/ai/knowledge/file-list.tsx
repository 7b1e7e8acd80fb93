import { ActionIcon, Text } from '@mantine/core'
import { IconTrash } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { ProblemMessage } from '../../ui/problem-message'
import { RelativeTime } from '../../ui/relative-time'
import classes from './knowledge.module.css'
import { filesQuery, type KnowledgeStore } from './knowledge-queries'

type FileListProps = {
  store: KnowledgeStore
  /** The file that a citation led to. */
  cited?: string
  onRemove: (id: string, name: string) => void
}

/** The files of a store, newest first. */
export function FileList({ store, cited, onRemove }: FileListProps) {
  const { data: files, error } = useQuery(filesQuery(store))
  if (error) return <ProblemMessage error={error} />
  if (files?.length === 0)
    return (
      <Text size="sm" c="dimmed">
        There are no files yet.
      </Text>
    )
  return (
    <ul className={classes.files}>
      {files?.map(({ _id, fileName, chunks, created }) => {
        const name = fileName || `Text ${_id.slice(0, 8)}`
        return (
          <li key={_id} className={_id === cited ? classes.cited : undefined} aria-current={_id === cited || undefined}>
            <div className={classes.fileName}>
              <Text size="sm" truncate dir="auto" title={name}>
                {name}
              </Text>
              <Text size="xs" c="dimmed">
                {chunks.toLocaleString()} {chunks === 1 ? 'part' : 'parts'} · <RelativeTime time={created} />
              </Text>
            </div>
            <ActionIcon variant="subtle" color="gray" aria-label={`Remove ${name}`} onClick={() => onRemove(_id, name)}>
              <IconTrash size={16} />
            </ActionIcon>
          </li>
        )
      })}
    </ul>
  )
}
