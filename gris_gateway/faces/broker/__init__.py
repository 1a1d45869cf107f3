"""A broker that is private: clients of Apache Pinot change its address, and their questions are asked of a gateway.

It speaks Pinot's HTTP as its clients do, in the gateway's process and by the gateway's own calls. An answer has the
shape of a broker's, and no statistic of an engine.
"""
