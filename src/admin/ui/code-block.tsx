import { Button } from '@mantine/core'
import classes from './code-block.module.css'
import { CopyButton } from './copy-button'

/** Code that can be copied. */
export const CodeBlock = ({ label, code }: { label: string; code: string }) => (
  <figure className={classes.block}>
    <figcaption className={classes.caption}>
      {label}
      <CopyButton value={code}>
        {({ copied, copy }) => (
          <Button
            variant="subtle"
            size="compact-xs"
            onClick={copy}
            aria-label={`${copied ? 'Copied' : 'Copy'} ${label}`}
          >
            {copied ? 'Copied' : 'Copy'}
          </Button>
        )}
      </CopyButton>
    </figcaption>
    <pre className={classes.code}>{code}</pre>
  </figure>
)
