import { Button, FileButton, Text } from '@mantine/core'
import { IconFileUpload } from '@tabler/icons-react'
import { type DragEvent, useState } from 'react'
import { ProblemMessage } from '../ui/problem-message'
import { openRowFile, type RowFile } from './file-rows'
import classes from './transfer.module.css'

const ACCEPTED = '.csv,.tsv,.txt,.ndjson,.jsonl,.json,text/csv,application/x-ndjson'

/** Takes a CSV or NDJSON file that is dropped or chosen. */
export function FileDrop({ onOpen }: { onOpen: (file: RowFile) => void }) {
  const [isOver, setIsOver] = useState(false)
  const [error, setError] = useState<unknown>()
  const open = (file: File | null | undefined) => {
    setError(undefined)
    if (file) openRowFile(file).then(onOpen, setError)
  }
  const handleDrop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    open(event.dataTransfer.files[0])
  }
  const handleOver = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(true)
  }
  return (
    <section
      className={`${classes.drop} ${isOver ? classes.over : ''}`}
      aria-label="File"
      onDragOver={handleOver}
      onDragLeave={() => setIsOver(false)}
      onDrop={handleDrop}
    >
      <IconFileUpload size={28} stroke={1.4} aria-hidden />
      <Text>Drop a CSV or NDJSON file here. Nothing is saved before you have seen it.</Text>
      <FileButton onChange={open} accept={ACCEPTED} inputProps={{ 'aria-label': 'File' }}>
        {(props) => <Button {...props}>Choose a file</Button>}
      </FileButton>
      {!!error && <ProblemMessage error={error} />}
    </section>
  )
}
