import { Button, FileButton, Group, Text } from '@mantine/core'
import { type DragEvent, type ReactNode, useState } from 'react'
import { type ChosenFile, readChosen, readDropped } from './chosen-files'
import classes from './folder-drop.module.css'

type FolderDropProps = {
  /** What is done with the files, for assistive technology. */
  label: string
  icon: ReactNode
  text: string
  /** The suffixes of archives that may be chosen. */
  accept: string
  onChoose: (files: Promise<ChosenFile[]>) => void
  /** What is shown in place of the buttons while the files are processed. */
  progress?: ReactNode
  children?: ReactNode
}

/** A place for a folder or an archive, which is dropped there or chosen. */
export function FolderDrop({ label, icon, text, accept, onChoose, progress, children }: FolderDropProps) {
  const [isOver, setIsOver] = useState(false)
  const handleDrop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    // What was dropped can only be read now.
    if (!progress) onChoose(readDropped(event.dataTransfer))
  }
  const handleOver = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(true)
  }
  const choose = (files: File[]) => files.length && onChoose(readChosen(files))
  return (
    <section
      className={`${classes.drop} ${isOver ? classes.over : ''}`}
      aria-label={label}
      onDragOver={handleOver}
      onDragLeave={() => setIsOver(false)}
      onDrop={handleDrop}
    >
      {icon}
      {progress || (
        <>
          <Text>{text}</Text>
          <Group gap="xs">
            <FileButton
              multiple
              onChange={choose}
              inputProps={{ 'aria-label': 'Folder', webkitdirectory: '' } as Record<string, string>}
            >
              {(props) => <Button {...props}>Choose a folder</Button>}
            </FileButton>
            <FileButton
              onChange={(file) => file && choose([file])}
              accept={accept}
              inputProps={{ 'aria-label': 'Archive' }}
            >
              {(props) => (
                <Button {...props} variant="default">
                  Choose an archive
                </Button>
              )}
            </FileButton>
          </Group>
        </>
      )}
      {children}
    </section>
  )
}
