import { type ReactNode, useEffect, useState } from 'react'
import { copyText } from './copy-text'
import { showProblem } from './notices'

const COPIED_TIME_MS = 1_000

type CopyButtonProps = { value: string; children: (state: { copied: boolean; copy: () => void }) => ReactNode }

/** Gives a button what copies a text and whether it was copied just now. */
export function CopyButton({ value, children }: CopyButtonProps) {
  const [copied, setCopied] = useState(false)
  useEffect(() => {
    const timer = copied && setTimeout(() => setCopied(false), COPIED_TIME_MS)
    return () => clearTimeout(timer || undefined)
  }, [copied])
  return children({ copied, copy: () => void copyText(value).then(() => setCopied(true), showProblem) })
}
