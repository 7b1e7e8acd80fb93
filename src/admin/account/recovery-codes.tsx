import { Button, Group, Text } from '@mantine/core'
import { useState } from 'react'
import { downloadFile } from '../transfer/file-download'
import { CopyButton } from '../ui/copy-button'
import classes from './account.module.css'

const FILE_NAME = 'recovery-codes.txt'

/** The recovery codes of a new second factor, which are shown once. */
export function RecoveryCodes({ codes, onKept }: { codes: string[]; onKept: () => void }) {
  const [isKept, setIsKept] = useState(false)
  const text = `${codes.join('\n')}\n`
  return (
    <>
      <Text size="sm" mb="sm">
        Your second factor is on. Keep these recovery codes where you can find them without your phone: each replaces a
        code from the app once. They are shown only now.
      </Text>
      <ul className={classes.codes} aria-label="Recovery codes">
        {codes.map((code) => (
          <li key={code}>{code}</li>
        ))}
      </ul>
      <Group gap="xs" mt="sm">
        <CopyButton value={text}>
          {({ copied, copy }) => (
            <Button
              variant="default"
              onClick={() => {
                copy()
                setIsKept(true)
              }}
            >
              {copied ? 'Copied' : 'Copy all'}
            </Button>
          )}
        </CopyButton>
        <Button
          variant="default"
          onClick={() => {
            downloadFile(FILE_NAME, [text], 'text/plain')
            setIsKept(true)
          }}
        >
          Download
        </Button>
        <Button variant={isKept ? 'filled' : 'subtle'} onClick={onKept}>
          I have kept them
        </Button>
      </Group>
    </>
  )
}
