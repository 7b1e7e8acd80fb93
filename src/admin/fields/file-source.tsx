import { ActionIcon, FileButton, Input, Progress, Text } from '@mantine/core'
import { IconUpload } from '@tabler/icons-react'
import { type DragEvent, type ReactNode, useState } from 'react'
import type { Field } from '../api/schema'
import classes from './file.module.css'
import { useFileUploads } from './file-uploads'

type FileSourceProps = {
  field: Field
  name: string
  multiple: boolean
  onUploaded: (urls: string[]) => void
  /** What stands above the progress, with the button by which files are chosen. */
  children: (chooser: ReactNode) => ReactNode
}

/** Takes files that are dropped or chosen, and shows how much of them has been sent. */
export function FileSource({ field, name, multiple, onUploaded, children }: FileSourceProps) {
  const [isOver, setIsOver] = useState(false)
  const { running, flaw, upload } = useFileUploads(field, onUploaded)
  const take = (files: File[]) => void upload(multiple ? files : files.slice(0, 1))
  const handleOver = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(true)
  }
  const handleDrop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    take([...event.dataTransfer.files])
  }
  const chooser = (
    <FileButton
      multiple
      accept={field.accept?.join(',')}
      onChange={take}
      inputProps={{ 'aria-label': `Files of ${name}` }}
    >
      {(props) => (
        <ActionIcon
          {...props}
          variant="subtle"
          color="gray"
          aria-label={`Choose a file for ${name}`}
          loading={running.length > 0}
        >
          <IconUpload size={16} />
        </ActionIcon>
      )}
    </FileButton>
  )
  return (
    <section
      className={`${classes.drop} ${isOver ? classes.over : ''}`}
      aria-label={`Files of ${name}`}
      onDragOver={handleOver}
      onDragLeave={() => setIsOver(false)}
      onDrop={handleDrop}
    >
      {children(chooser)}
      {running.map(({ id, name: fileName, part }) => (
        <div key={id}>
          <Text size="xs">{fileName}</Text>
          <Progress value={part * 100} aria-label={`Upload of ${fileName}`} />
        </div>
      ))}
      {flaw && <Input.Error role="alert">{flaw}</Input.Error>}
    </section>
  )
}
