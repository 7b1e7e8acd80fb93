import { Checkbox, Progress, Text } from '@mantine/core'
import { IconWorldUpload } from '@tabler/icons-react'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { queryClient } from '../../api/queries'
import type { ChosenFile } from '../../ui/chosen-files'
import { FolderDrop } from '../../ui/folder-drop'
import { showNotice } from '../../ui/notices'
import { ProblemMessage } from '../../ui/problem-message'
import classes from './site.module.css'
import { packSite } from './site-files'
import { uploadSite } from './site-upload'

/** Takes a folder or an archive that is dropped or chosen, and deploys it. */
export function SiteDrop({ isSpa: wasSpa }: { isSpa: boolean }) {
  const [isSpa, setIsSpa] = useState(wasSpa)
  const [sent, setSent] = useState(0)
  const deployment = useMutation({
    mutationFn: async (files: Promise<ChosenFile[]>) => uploadSite(packSite(await files), isSpa, setSent),
    onMutate: () => setSent(0),
    onSuccess: async () => {
      showNotice('The site is deployed.')
      await queryClient.invalidateQueries({ queryKey: ['site'] })
    },
  })
  return (
    <FolderDrop
      label="Deploy"
      icon={<IconWorldUpload size={28} stroke={1.4} aria-hidden />}
      text="Drop the folder that your build writes, or a tar or zip of it. It replaces the whole site in one step."
      accept=".zip,.tar,.tgz,.gz"
      onChoose={deployment.mutate}
      progress={
        deployment.isPending && (
          <div className={classes.progress}>
            <Text role="status">{sent < 1 ? 'Sending the files …' : 'Storing the files …'}</Text>
            <Progress value={sent * 100} animated={sent >= 1} aria-label="Sent" size="sm" mt={8} />
          </div>
        )
      }
    >
      {!deployment.isPending && (
        <Checkbox
          label="An app with its own router: unknown paths show index.html"
          checked={isSpa}
          onChange={(event) => setIsSpa(event.currentTarget.checked)}
        />
      )}
      {deployment.error && <ProblemMessage error={deployment.error} m={0} />}
    </FolderDrop>
  )
}
