import { syntaxHighlighting } from '@codemirror/language'
import { unifiedMergeView } from '@codemirror/merge'
import { EditorState } from '@codemirror/state'
import { EditorView, lineNumbers } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { type CodeLanguage, colours, languages } from './code-mirror'
import classes from './code-mirror.module.css'
import { readCspNonce } from './csp-nonce'

const UNCHANGED_LINES_SHOWN = 3

export type CodeMergeProps = {
  /** What is compared, for assistive technology. */
  label: string
  language: CodeLanguage
  before: string
  after: string
  isTall?: boolean
}

/** The comparison of `CodeDiff`. */
export function CodeMerge({ label, language, before, after, isTall }: CodeMergeProps) {
  const host = useRef<HTMLDivElement>(null)
  useEffect(() => {
    const view = new EditorView({
      parent: host.current!,
      state: EditorState.create({
        doc: after,
        extensions: [
          lineNumbers(),
          languages[language](),
          syntaxHighlighting(colours),
          EditorView.cspNonce.of(readCspNonce()),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
          EditorState.readOnly.of(true),
          unifiedMergeView({
            original: before,
            mergeControls: false,
            collapseUnchanged: { margin: UNCHANGED_LINES_SHOWN },
          }),
        ],
      }),
    })
    return () => view.destroy()
  }, [label, language, before, after])
  return <div ref={host} className={`${classes.editor} ${isTall ? classes.tall : ''}`} />
}
