import { Button, Checkbox, FileButton, Group, Progress, Text } from '@mantine/core'
import { IconWorldUpload } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { type DragEvent, useState } from 'react'
import { queryClient } from '../../api/queries'
import { showNotice } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import classes from './site.module.css'
import { readChosenSite, readDroppedSite } from './site-files'
import { uploadSite } from './site-upload'

/** Takes a folder or an archive that is dropped or chosen, and deploys it. */
export function SiteDrop({ isSpa: wasSpa }: { isSpa: boolean }) {
  const [isOver, setIsOver] = useState(false)
  const [isSpa, setIsSpa] = useState(wasSpa)
  const [sent, setSent] = useState(0)
  const deployment = useMutation({
    mutationFn: async (archive: Promise<Blob>) => uploadSite(await archive, isSpa, setSent),
    onMutate: () => setSent(0),
    onSuccess: async () => {
      showNotice('The site is deployed.')
      await queryClient.invalidateQueries({ queryKey: ['site'] })
    },
  })
  const handleDrop = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(false)
    // What was dropped can only be read now.
    if (!deployment.isPending) deployment.mutate(readDroppedSite(event.dataTransfer))
  }
  const handleOver = (event: DragEvent) => {
    event.preventDefault()
    setIsOver(true)
  }
  const choose = (files: File[]) => files.length && deployment.mutate(readChosenSite(files))
  return (
    <section
      className={`${classes.drop} ${isOver ? classes.over : ''}`}
      aria-label="Deploy"
      onDragOver={handleOver}
      onDragLeave={() => setIsOver(false)}
      onDrop={handleDrop}
    >
      <IconWorldUpload size={28} stroke={1.4} aria-hidden />
      {deployment.isPending ? (
        <div className={classes.progress}>
          <Text role="status">{sent < 1 ? 'Sending the files …' : 'Storing the files …'}</Text>
          <Progress value={sent * 100} animated={sent >= 1} aria-label="Sent" size="sm" mt={8} />
        </div>
      ) : (
        <>
          <Text>
            Drop the folder that your build writes, or a tar or zip of it. It replaces the whole site at once.
          </Text>
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
              accept=".zip,.tar,.tgz,.gz"
              inputProps={{ 'aria-label': 'Archive' }}
            >
              {(props) => (
                <Button {...props} variant="default">
                  Choose an archive
                </Button>
              )}
            </FileButton>
          </Group>
          <Checkbox
            label="An app with its own router: unknown paths show index.html"
            checked={isSpa}
            onChange={(event) => setIsSpa(event.currentTarget.checked)}
          />
        </>
      )}
      {deployment.error && <ProblemMessage error={deployment.error} m={0} />}
    </section>
  )
}
