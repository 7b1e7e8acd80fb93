import { Button } from '@mantine/core'
import { useState } from 'react'
import type { ListedBackup } from '../api/schema'
import { formatBytes } from '../ui/format-bytes'
import { RelativeTime } from '../ui/relative-time'
import { RowList } from '../ui/row-list'
import { StateTag } from '../ui/state-tag'

const SHOWN_AT_FIRST = 5

type BackupListProps = { backups: ListedBackup[]; isBusy: boolean; onRestore: (backup: ListedBackup) => void }

/** The backups of a tenant, latest first, of which each can be restored. */
export function BackupList({ backups, isBusy, onRestore }: BackupListProps) {
  const [areAllShown, showAll] = useState(false)
  return (
    <>
      <RowList
        label="Backups"
        rows={areAllShown ? backups : backups.slice(0, SHOWN_AT_FIRST)}
        rowKey={({ name }) => name}
        empty="There is no backup of this tenant yet."
        render={(backup) => ({
          title: (
            <>
              <RelativeTime time={backup.created} />
              {backup.encrypted && <StateTag label="Encrypted" />}
            </>
          ),
          text: `${formatBytes(backup.bytes)}, ${backup.rows.toLocaleString()} rows, version ${backup.version}`,
          actions: (
            <Button variant="default" size="xs" disabled={isBusy} onClick={() => onRestore(backup)}>
              Restore…
            </Button>
          ),
        })}
      />
      {!areAllShown && backups.length > SHOWN_AT_FIRST && (
        <Button variant="subtle" size="xs" onClick={() => showAll(true)}>
          Show all {backups.length}
        </Button>
      )}
    </>
  )
}
