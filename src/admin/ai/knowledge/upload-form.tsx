import { Button, FileButton, Group, Loader, Select, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { IconCheck, IconUpload } from '@tabler/icons-react'
import { useQuery } from '@tanstack/react-query'
import { type DragEvent, useState } from 'react'
import { blueprintsQuery } from '../../api/queries'
import { ProblemMessage } from '../../ui/problem-message'
import classes from './knowledge.module.css'
import type { KnowledgeStore } from './knowledge-queries'
import { toEntitySource, toUploadSource, type Upload, type UploadSource, useUploads } from './uploads'

type AddProps = { onAdd: (sources: UploadSource[]) => void }

/** Takes files by dropping or choosing, a text, or all entities of a blueprint. */
export function UploadForm({ store }: { store: KnowledgeStore }) {
  const { uploads, add } = useUploads(store)
  const [isPasting, setIsPasting] = useState(false)
  return (
    <Stack gap="xs">
      <DropArea onAdd={add} />
      <Group gap="xs">
        <Button variant="default" aria-expanded={isPasting} onClick={() => setIsPasting(!isPasting)}>
          Paste text
        </Button>
        <EntityChoice onAdd={add} />
      </Group>
      {isPasting && <PasteForm onAdd={add} onClose={() => setIsPasting(false)} />}
      <div role="status">
        <ul className={classes.uploads} aria-label="Uploads">
          {uploads.map((upload) => (
            <UploadLine key={upload.id} upload={upload} />
          ))}
        </ul>
      </div>
    </Stack>
  )
}

function DropArea({ onAdd }: AddProps) {
  const [isOver, setIsOver] = useState(false)
  const addFiles = (files: Iterable<File>) => onAdd([...files].map(toUploadSource))
  const drop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    addFiles(event.dataTransfer.files)
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the button in it does the same by keyboard
    <div
      className={`${classes.drop} ${isOver ? classes.over : ''}`}
      onDragOver={(event) => {
        event.preventDefault()
        setIsOver(true)
      }}
      onDragLeave={() => setIsOver(false)}
      onDrop={drop}
    >
      <Text size="sm" c="dimmed">
        Drop text, Markdown or JSON here, or
      </Text>
      <FileButton multiple onChange={addFiles}>
        {(props) => (
          <Button {...props} leftSection={<IconUpload size={14} />}>
            Choose files
          </Button>
        )}
      </FileButton>
    </div>
  )
}

function PasteForm({ onAdd, onClose }: AddProps & { onClose: () => void }) {
  const [name, setName] = useState('')
  const [text, setText] = useState('')
  const save = () => {
    onAdd([{ name: name.trim() || 'Text', read: async () => text }])
    onClose()
  }
  return (
    <Stack gap="xs">
      <TextInput
        label="Name"
        placeholder="Opening hours"
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Textarea
        label="Text"
        description="Headings of Markdown and paragraphs become the parts that are found."
        autosize
        minRows={4}
        maxRows={14}
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
      />
      <Button w="fit-content" disabled={!text.trim()} onClick={save}>
        Add text
      </Button>
    </Stack>
  )
}

function EntityChoice({ onAdd }: AddProps) {
  const { data: blueprints = [] } = useQuery(blueprintsQuery)
  if (!blueprints.length) return null
  return (
    <Select
      size="xs"
      aria-label="Add the entities of a blueprint"
      placeholder="Add entities of…"
      searchable
      value={null}
      data={blueprints.map(({ key, name }) => ({ value: key, label: name }))}
      onChange={(key) => key && onAdd([toEntitySource(key)])}
    />
  )
}

const STATE_LABELS: Record<Upload['state'], string> = {
  waiting: 'Waiting',
  running: 'Uploading',
  complete: 'Stored',
  failed: 'Failed',
}

const UploadLine = ({ upload: { name, state, error } }: { upload: Upload }) => (
  <li>
    <Group gap="xs" wrap="nowrap">
      {state === 'complete' ? (
        <IconCheck size={14} aria-hidden />
      ) : (
        state !== 'failed' && <Loader size={12} aria-hidden />
      )}
      <Text size="sm" truncate dir="auto">
        {name}
      </Text>
      <Text size="xs" c="dimmed">
        {STATE_LABELS[state]}
      </Text>
    </Group>
    {state === 'failed' && <ProblemMessage error={error} />}
  </li>
)
